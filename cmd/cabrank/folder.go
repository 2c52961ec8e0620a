package main

import "errors"

// folder is a flag that names a folder for results.
type folder string

// Set implements pflag.Value. Other programs write to standard output for a dash; here it
// would be a folder of that name.
func (f *folder) Set(name string) error {
	if name == "-" {
		return errors.New("want a folder, results are several files")
	}
	*f = folder(name)
	return nil
}

// String implements pflag.Value.
func (f *folder) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *folder) Type() string { return "folder" }
