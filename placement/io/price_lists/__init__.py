"""Price lists that users download: CSV, JSON of AWS and of Azure, and prices put on an instance.

price_tables   prices of sites and of pairs by name, and matrices for an instance
csv_prices     both from CSV
cloud_lists    both from the price lists of AWS and Azure, in JSON
apply_prices   an instance with prices
"""
