module delayline.test/lmstfy-client

go 1.25

require github.com/bitleak/lmstfy v1.0.15
