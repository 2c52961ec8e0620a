//go:build real

package packages_test

import "errors"

const systemctlRole = "systemctl"

func runSystemctl([]string) error { return errors.ErrUnsupported }
