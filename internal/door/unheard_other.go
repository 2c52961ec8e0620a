//go:build !linux

package door

// setUserTimeout does nothing: only Linux has the option.
func setUserTimeout(uintptr) {}
