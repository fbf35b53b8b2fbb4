"""`saros mqtt`: writes the messages of an MQTT broker to a database.

    broker_connection --messages--> message_reader --rows--> batch_writer --> database
         ^                           (routes, payload_formats)     └ refused: dead_letters
         └----------------- acknowledgement, once everything is durable

`bridge` runs the loop, in one thread. `command` reads the options.
"""
