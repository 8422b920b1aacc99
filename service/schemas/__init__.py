"""Request and response shapes of the routes. A field that is not listed here is an error.

`null` for an optional field means its default. Limits that are settings are checked in the routes.
"""
