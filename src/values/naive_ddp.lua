same = on("cpu").naive_ddp
same_naive = same{kind="naive", wire="fp32", ranks=2}
