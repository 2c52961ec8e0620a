// Package strictyaml fills structs from YAML, and tells of each fault the file, the line,
// the key, what is wrong, what is allowed, and what was probably meant. All faults of a
// file are told together, in the order of its lines. It knows nothing of what keys mean.
//
// Read gives a file as a Node, of which parts are decoded in any order, also several
// times into the same struct: what a part does not give stays as it was. Fields with a
// tag key are filled: numbers, time.Duration, bool, string, what has UnmarshalText,
// structs, pointers, slices (one value is a list of one), maps by free name, and Nodes,
// which are kept to be decoded later. The tags:
//
//	key:"count"       the key; "count,required" has to be there; "count,alone" may stand
//	                  as the whole value, too: workers: 3; ",inline" has its keys here
//	also:"pool_size"  other names of the key
//	range:"1..1000"   bounds, in the unit of the value; not negative if there is none
//	zero:"never"      0 is allowed beside the range, and what it means
//	word:"auto=0"     a word that stands for a number, or several with | between them
//	unit:"%"          a share: 5% is 0.05; B: bytes, also in KiB, MiB, GiB; /s: a rate
//	oneof:"a|b"       its words
//	split:","         at what one text becomes a list
//	items:"1..32"     how many entries a list or a map has
package strictyaml

// Unmarshaler is a type that reads its value itself. It tells of faults by n.Fault.
type Unmarshaler interface{ UnmarshalStrict(n Node) }

// Checker is a type that looks at itself once it is filled, if nothing is wrong with its
// parts. It tells of faults by n.Fault.
type Checker interface{ Check(n Node) }
