-- values of [](#sec-formats)
format_row = by(mixed_precision_accumulation_formats, "format")
