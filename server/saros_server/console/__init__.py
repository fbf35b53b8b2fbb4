"""The console in the browser: its files, the sessions of browsers, and the routes that only its pages use.

The sources of the pages are in `server/console`; `make console` bundles them into `static/`.
"""
