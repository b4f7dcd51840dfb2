"""Groups of options about one topic, and the objects they become.

diversity_options    rules for failure domains
loss_options         losses that a plan must survive
percentile_options   percentiles and their RTTs
price_options        price lists
question_options     the question of a plan, asked again
"""
