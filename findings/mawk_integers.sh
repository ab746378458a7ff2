#!/usr/bin/env bash
# mawk_integers.sh: mawk 1.3.4-20200120, the awk of Debian 12
#
# POSIX has awk convert a number whose value is an integer as if by "%d".  This
# mawk does so below 2^31 only.  From there on, print and string conversion give
# six digits, and printf "%d" stops at 2^31 - 1, both without a word and with
# exit status 0: a sum of bytes over 2 GiB that passes through awk is wrong.
# A word that begins with "inf" or "nan", such as info, is a number for it, too,
# and so is a hexadecimal one; to POSIX both are 0.
#
# Seen:
#     2^31 - 1: 2147483647 2147483647
#     2^31: 2.14748e+09 2147483647
#     2^53: 9.0072e+15 2147483647
#     info + 0: inf; 0x10 + 0: 16
#
# mawk 1.3.4-20250131, of Debian 13, prints 2147483648, 9007199254740992, 0, 0.
set -euo pipefail
version=1.3.4.20200120-3.1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
curl -fsS -o mawk.deb \
	"http://deb.debian.org/debian/pool/main/m/mawk/mawk_${version}_amd64.deb"
dpkg-deb -x mawk.deb root
root/usr/bin/mawk 'BEGIN {
	printf "2^31 - 1: "; print 2^31 - 1 " " sprintf("%d", 2^31 - 1)
	printf "2^31: "; print 2^31 " " sprintf("%d", 2^31)
	printf "2^53: "; print 2^53 " " sprintf("%d", 2^53)
	print "info + 0: " ("info" + 0) "; 0x10 + 0: " ("0x10" + 0)
}' | tee said
diff said - <<'END'
2^31 - 1: 2147483647 2147483647
2^31: 2.14748e+09 2147483647
2^53: 9.0072e+15 2147483647
info + 0: inf; 0x10 + 0: 16
END
echo 'mawk behaves as described'
