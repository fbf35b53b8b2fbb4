"""The results of SHOW and COUNT.

show_executor       dispatches a statement to one of the modules below
show_schema         databases, devices, series, templates, views        show_times     series by the times of points
show_cluster        nodes and regions                                   show_stored    partitions, files, disk usage
cluster_requests    reports of each node about itself: queries, partitions, files; KILL QUERY
"""
