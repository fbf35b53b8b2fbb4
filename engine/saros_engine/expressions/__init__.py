"""Building blocks of expressions: conversion, text kernels, times, literals, exact comparison of integers."""
