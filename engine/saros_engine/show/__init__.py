"""The results of SHOW and COUNT.

show_executor       which module answers which statement
show_schema         databases, devices, series, templates, views        show_times     series by the times of points
show_cluster        nodes and regions                                   show_stored    partitions, files, disk usage
cluster_requests    what each node reports about itself: queries, partitions, files; KILL QUERY
"""
