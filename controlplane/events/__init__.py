"""Events of a cluster: publication to browsers and to webhooks."""
