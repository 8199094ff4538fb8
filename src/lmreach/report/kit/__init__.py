"""What every section of the page is made with."""
