package cli

import "fmt"

// Plural is a number of things: "1 call", "3 calls".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
