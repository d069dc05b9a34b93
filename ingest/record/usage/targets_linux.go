package usage

import (
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bpf"
	"symbolize/ingest/record/sys"
)

// targets name functions of the kernel by their BTF, which is loaded when it is needed.
type targets struct {
	specs map[uint32]*btf.Spec // by the number of the BTF; nil: not to be had
	names map[uint32]string    // of modules
}

// infoAttachBTF is attach_btf_obj_id of struct bpf_prog_info.
const infoAttachBTF = 220

// function returns the function that a program is attached to by a link, which has the number of
// a BTF or of another program, and of a type there; "" if it cannot be found out.
func (t *targets) function(program, object, id uint32) string {
	made := attachedTo(program)
	switch {
	case made == 0:
		return "" // the program is gone
	case made != object: // the link has a program's number, which extends another one
		return fmt.Sprintf("BPF program %d", object)
	}
	spec := t.spec(object)
	if spec == nil {
		return ""
	}
	typ, err := spec.TypeByID(btf.TypeID(id))
	if err != nil {
		return ""
	}
	if module := t.names[object]; module != "" {
		return typ.TypeName() + " [" + module + "]"
	}
	return typ.TypeName()
}

// attachedTo returns the BTF with the function that a program was loaded for, 0 if there is none.
func attachedTo(program uint32) (object uint32) {
	fd, err := sys.FDByID(sys.ProgGetFDByID, program, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	info := make([]byte, bpf.InfoLen)
	if _, err := sys.BPFInfo(fd, info); err != nil {
		return 0
	}
	return binary.NativeEndian.Uint32(info[infoAttachBTF:])
}

// spec returns the types of the kernel or of a module, by the number of their BTF.
func (t *targets) spec(object uint32) *btf.Spec {
	if s, ok := t.specs[object]; ok {
		return s
	}
	if t.specs == nil {
		t.specs, t.names = make(map[uint32]*btf.Spec), make(map[uint32]string)
	}
	t.specs[object] = nil
	h, err := btf.NewHandleFromID(btf.ID(object))
	if err != nil {
		return nil
	}
	defer h.Close()
	info, err := h.Info()
	if err != nil || !info.IsKernel {
		return nil
	}
	var spec *btf.Spec
	if info.IsModule() {
		spec, err = btf.LoadKernelModuleSpec(info.Name)
		t.names[object] = info.Name
	} else {
		spec, err = btf.LoadKernelSpec()
	}
	if err == nil {
		t.specs[object] = spec
	}
	return t.specs[object]
}
