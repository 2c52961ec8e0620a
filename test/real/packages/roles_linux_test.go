//go:build real || soak

package packages_test

import "github.com/cabrank/cabrank/test/real/harness"

// roles are what the test binary is on a machine of an example.
func roles() []harness.Role {
	return []harness.Role{
		{Name: machineRole, Run: runMachine},
		{Name: dockerRole, Run: runDocker},
		{Name: containerRole, Run: runContainer},
		{Name: systemdRole, Run: runSystemd},
	}
}
