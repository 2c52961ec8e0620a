package main

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// machine is where it was measured.
type machine struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	Kernel     string `json:"kernel"`
	Go         string `json:"go"`
	Network    string `json:"network"` // private: a namespace of its own; shared
	Load       string `json:"load_average"`
	Priority   string `json:"priority"` // of all that was run
	ProxyCore  int    `json:"proxy_core"`
	OtherCore  int    `json:"other_core"`
	SecondCore int    `json:"second_core"` // of the proxy, on the workload shards
}

func thisMachine(o options) machine {
	return machine{
		CPU: cpuModel(), Cores: cores(), Kernel: firstLine("/proc/sys/kernel/osrelease"), Go: runtime.Version(),
		Network: network(), Load: firstLine("/proc/loadavg"), Priority: o.priority,
		ProxyCore: o.proxyCore, OtherCore: o.otherCore, SecondCore: o.secondCore,
	}
}

// commit names what was measured; "none" outside of a repository.
func commit(root string) string {
	c := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
	c.Dir = root
	out, err := c.Output()
	if err != nil {
		return "none"
	}
	return strings.TrimSpace(string(out))
}

func firstLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

// cpuInfo returns the values of one name in /proc/cpuinfo, one per core. Unlike
// runtime.NumCPU it also sees the cores that this process is not pinned to.
func cpuInfo(name string) (values []string) {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			values = append(values, strings.TrimSpace(value))
		}
	}
	return values
}

func cores() int { return len(cpuInfo("processor")) }

func cpuModel() string {
	models := cpuInfo("model name")
	slices.Sort(models)
	return strings.Join(slices.Compact(models), ", ")
}
