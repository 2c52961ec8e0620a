package cli

import "errors"

// Folder is a flag that names a folder for results.
type Folder string

// Set implements pflag.Value. Other programs write to standard output for a dash; here it
// would be a folder of that name.
func (f *Folder) Set(name string) error {
	if name == "-" {
		return errors.New("want a folder, results are several files")
	}
	*f = Folder(name)
	return nil
}

// String implements pflag.Value.
func (f *Folder) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *Folder) Type() string { return "folder" }
