package config

import (
	"strconv"
	"strings"
)

// MemoryLimit is what a worker may take; zero: any amount.
type MemoryLimit struct {
	Bytes   Size // resident, of the worker's processes
	Percent int  // of the control group's memory limit, 1 to 100
}

// memoryLimit is the kind of *MemoryLimit fields: bytes, or a share.
type memoryLimit struct{}

func (memoryLimit) bytes() byteSize { return byteSize{MiB, 1024 * GiB, never} }

func (k memoryLimit) set(field any, text string) error {
	limit := MemoryLimit{}
	share, err := strconv.ParseFloat(text, 64)
	if strings.HasSuffix(text, "%") || err == nil && share > 0 && share < 1 {
		limit.Percent, err = wholePercent(text)
	} else {
		err = k.bytes().set(&limit.Bytes, text)
	}
	if err == nil {
		*field.(*MemoryLimit) = limit
	}
	return err
}

func (k memoryLimit) show(field any) string {
	if limit := field.(*MemoryLimit); limit.Percent > 0 {
		return strconv.Itoa(limit.Percent) + "%"
	}
	return k.bytes().show(&field.(*MemoryLimit).Bytes)
}

func (k memoryLimit) allowed() string {
	return "1% to 100% of the container's limit, " + k.bytes().allowed()
}
