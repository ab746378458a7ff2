# readme.sh: sourced by tests; takes lines from the README, for $program
from_readme() { # from_readme PATTERN PATTERN: lines between, without indent
	sed -n "/^    $1/,/^    $2/s/^    //p" README.md |
		sed "s#build/fsdp_accounting#$program#; s#fsdp.tsv#$out/table.tsv#"
}
few=(--device cpu --size small --precision fp32 --strategy fsdp --steps 1)
rows() { grep -c '^small.*	ok$' "$1" || true; }
