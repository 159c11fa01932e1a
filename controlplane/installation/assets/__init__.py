"""Static files: the bundle of Plotly, their collection under hashed names, and their server."""
