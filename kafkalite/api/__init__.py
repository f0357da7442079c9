"""One module per API, or per family of small ones: what is asked, checked and answered."""
