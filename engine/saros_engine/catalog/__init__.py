"""What users define beside series: device templates, logical views, continuous queries."""
