# rows.gp: rows of a table by awk, in which c("size") is a cell of the present
# row; a name that is no column's stops the figure
by_name = "awk -F'\t' -v OFS='\t' 'function c(name) { \
	if (name in at) return $at[name]; \
	print \"no column with header \" name >\"/dev/stderr\"; exit 1 } \
	/^#/ { next } \
	!head++ { for (i = 1; i <= NF; i++) at[$i] = i; next } "
# names of the new columns, with tabs between
rows(names, program) = "<".by_name."BEGIN { print \"".names."\" } ".program \
	."' "
