"""The admission of streams to split nodes: observation, forecasts, problems and actions."""
