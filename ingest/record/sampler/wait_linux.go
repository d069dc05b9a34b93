package sampler

import (
	"encoding/binary"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// waiter waits for the program's signal that there is data that will not be there for
// long.
type waiter struct {
	poll  *os.File // which the runtime waits for, so that no thread has to
	conn  syscall.RawConn
	event int
}

// newWaiter waits for the ring with this descriptor: for the records alone for which the
// program wakes its reader.
func newWaiter(ring int) (w *waiter, err error) {
	w = &waiter{event: -1}
	defer func() {
		if err != nil {
			w.close()
			w, err = nil, fmt.Errorf("wait for the ring of stacks: %w", err)
		}
	}()
	if w.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return w, err
	}
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return w, err
	}
	if err = unix.SetNonblock(poll, true); err != nil {
		unix.Close(poll)
		return w, err
	}
	w.poll = os.NewFile(uintptr(poll), "epoll")
	if w.conn, err = w.poll.SyscallConn(); err != nil {
		return w, err
	}
	for _, e := range []unix.EpollEvent{{Fd: int32(ring), Events: unix.EPOLLIN | unix.EPOLLET},
		{Fd: int32(w.event), Events: unix.EPOLLIN}} {
		if err = unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, int(e.Fd), &e); err != nil {
			return w, err
		}
	}
	return w, w.poll.SetReadDeadline(time.Time{}) // an error if it cannot be waited for
}

func (w *waiter) close() {
	if w.poll != nil {
		w.poll.Close()
	}
	if w.event >= 0 {
		unix.Close(w.event)
		w.event = -1
	}
}

// Wait waits for this long, or less: until a process was met for the first time with an
// address in its stack that only its mappings name, which it reports, or until Wake is
// called, which ends every Wait from then on. Drain is to follow.
func (s *Sampler) Wait(most time.Duration) (woken bool) {
	if s.waiter.poll.SetReadDeadline(time.Now().Add(most)) != nil {
		return false // it is closed
	}
	var events [2]unix.EpollEvent
	err := s.waiter.conn.Read(func(fd uintptr) bool {
		n, _ := unix.EpollWait(int(fd), events[:], 0)
		return n > 0
	})
	return err == nil
}

// Wake ends a Wait. Any goroutine may call it.
func (s *Sampler) Wake() {
	_, _ = unix.Write(s.waiter.event, binary.NativeEndian.AppendUint64(nil, 1))
}
