/^@use [ <]/ { print "@text <<" substr($0, 6) ">>"; next } 1
