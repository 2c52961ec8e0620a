package protofile

import (
	"strings"

	"github.com/bufbuild/protocompile/ast"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// uninterpreted is the field of each kind of options in which the parser leaves them.
const uninterpreted = "uninterpreted_option"

// interpret sets the options that protobuf itself defines, in a part of a descriptor and
// all that is below it. Which JSON name a field has and whether it is packed, or an enum
// has aliases, is for options to say.
func (f *file) interpret(part protoreflect.Message) (err error) {
	if field, is := part.Interface().(*descriptorpb.FieldDescriptorProto); is {
		if err := f.interpretField(field); err != nil {
			return err
		}
	}
	if left := part.Descriptor().Fields().ByName(uninterpreted); left != nil {
		options := part.Get(left).List()
		for i := range options.Len() {
			if err := f.option(part, options.Get(i).Message()); err != nil {
				return err
			}
		}
		part.Clear(left)
		return nil
	}
	part.Range(func(d protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case d.Message() == nil:
		case d.IsList():
			for i := range v.List().Len() {
				if err = f.interpret(v.List().Get(i).Message()); err != nil {
					return false
				}
			}
		default:
			err = f.interpret(v.Message())
		}
		return err == nil
	})
	return err
}

// interpretField takes out what is written as options but is part of the field: its JSON
// name. Its default says what reads as if it had been sent; it is not, and is left out.
func (f *file) interpretField(field *descriptorpb.FieldDescriptorProto) error {
	var rest []*descriptorpb.UninterpretedOption
	for _, o := range field.GetOptions().GetUninterpretedOption() {
		switch only(o) {
		case "json_name":
			name, is := f.OptionNode(o).GetValue().Value().(string)
			if !is || strings.HasPrefix(name, "[") {
				return f.fault(f.OptionNode(o).GetValue(), "this is no JSON name")
			}
			field.JsonName = new(name)
		case "default":
		default:
			rest = append(rest, o)
		}
	}
	if field.GetOptions() != nil {
		field.Options.UninterpretedOption = rest
	}
	return nil
}

// only returns the name of an option that has one part, without parentheses.
func only(o *descriptorpb.UninterpretedOption) string {
	if len(o.GetName()) != 1 || o.GetName()[0].GetIsExtension() {
		return ""
	}
	return o.GetName()[0].GetNamePart()
}

// option sets one option in its kind of options.
func (f *file) option(options, left protoreflect.Message) error {
	o, is := left.Interface().(*descriptorpb.UninterpretedOption)
	if !is {
		return nil
	}
	for _, part := range o.GetName() {
		if part.GetIsExtension() {
			return nil // somebody else has defined it
		}
	}
	node := f.OptionNode(o)
	for i, part := range o.GetName() {
		d := options.Descriptor().Fields().ByName(protoreflect.Name(part.GetNamePart()))
		last := i == len(o.GetName())-1
		if d == nil || d.Name() == uninterpreted || !last && (d.Message() == nil || d.IsList()) {
			return f.fault(node.GetName(), "unknown option %s", part.GetNamePart())
		}
		if last {
			return f.set(options, d, node.GetValue())
		}
		options = options.Mutable(d).Message()
	}
	return nil
}

// set sets a field to a value, or adds it to what is repeated.
func (f *file) set(m protoreflect.Message, d protoreflect.FieldDescriptor, node ast.ValueNode) error {
	if d.Message() != nil {
		return f.setMessage(m, d, node)
	}
	if elements, is := node.Value().([]ast.ValueNode); is && d.IsList() {
		for _, element := range elements {
			if err := f.set(m, d, element); err != nil {
				return err
			}
		}
		return nil
	}
	v, is := scalar(d, node.Value())
	if !is {
		return f.fault(node, "%s is a %s, not this", d.Name(), d.Kind())
	}
	if d.IsList() {
		m.Mutable(d).List().Append(v)
	} else {
		m.Set(d, v)
	}
	return nil
}

// setMessage sets the fields of a message, or of one more that is repeated.
func (f *file) setMessage(m protoreflect.Message, d protoreflect.FieldDescriptor, node ast.ValueNode) error {
	if elements, is := node.Value().([]ast.ValueNode); is && d.IsList() {
		for _, element := range elements {
			if err := f.setMessage(m, d, element); err != nil {
				return err
			}
		}
		return nil
	}
	fields, is := node.Value().([]*ast.MessageFieldNode)
	if !is {
		return f.fault(node, "%s is a message, not this", d.Name())
	}
	var target protoreflect.Message
	if d.IsList() {
		target = m.Mutable(d).List().AppendMutable().Message()
	} else {
		target = m.Mutable(d).Message()
	}
	for _, field := range fields {
		if field.Name.IsExtension() {
			continue // somebody else has defined it
		}
		inner := target.Descriptor().Fields().ByName(protoreflect.Name(field.Name.Value()))
		if inner == nil {
			return f.fault(field.Name, "%s has no field %s", target.Descriptor().FullName(), field.Name.Value())
		}
		if err := f.set(target, inner, field.Val); err != nil {
			return err
		}
	}
	return nil
}

// scalar returns a literal as the value of a field.
func scalar(d protoreflect.FieldDescriptor, literal any) (protoreflect.Value, bool) {
	switch v := literal.(type) {
	case ast.Identifier:
		if d.Kind() == protoreflect.BoolKind && (v == "true" || v == "false") {
			return protoreflect.ValueOfBool(v == "true"), true
		}
		if d.Enum() != nil {
			if named := d.Enum().Values().ByName(protoreflect.Name(v)); named != nil {
				return protoreflect.ValueOfEnum(named.Number()), true
			}
		}
	case string:
		if d.Kind() == protoreflect.StringKind {
			return protoreflect.ValueOfString(v), true
		}
	case uint64:
		if d.Kind() == protoreflect.Int32Kind && v < 1<<31 {
			return protoreflect.ValueOfInt32(int32(v)), true
		}
	}
	return protoreflect.Value{}, false
}
