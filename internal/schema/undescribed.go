package schema

import "google.golang.org/protobuf/reflect/protoreflect"

// Undescribed returns the name of a message or enum that a message has in it and that
// is only known by name, or "".
func Undescribed(m protoreflect.MessageDescriptor) protoreflect.FullName {
	return undescribed(m, map[protoreflect.FullName]bool{})
}

func undescribed(m protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) protoreflect.FullName {
	if m.IsPlaceholder() {
		return m.FullName()
	}
	if seen[m.FullName()] {
		return ""
	}
	seen[m.FullName()] = true
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		if e := field.Enum(); e != nil && e.IsPlaceholder() {
			return e.FullName()
		}
		if inner := field.Message(); inner != nil {
			if unknown := undescribed(inner, seen); unknown != "" {
				return unknown
			}
		}
	}
	return ""
}
