package sampler

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// waiter waits for the program to say that there is something that will not be there for
// long.
type waiter struct{ poll, event int }

// newWaiter waits for the ring with this descriptor: for the records alone for which the
// program wakes its reader.
func newWaiter(ring int) (w *waiter, err error) {
	w = &waiter{poll: -1, event: -1}
	if w.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		w.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	}
	if err == nil {
		err = unix.EpollCtl(w.poll, unix.EPOLL_CTL_ADD, ring,
			&unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(ring)})
	}
	if err == nil {
		err = unix.EpollCtl(w.poll, unix.EPOLL_CTL_ADD, w.event,
			&unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(w.event)})
	}
	if err != nil {
		w.close()
		return nil, fmt.Errorf("wait for the ring of stacks: %w", err)
	}
	return w, nil
}

func (w *waiter) close() {
	for _, fd := range []*int{&w.poll, &w.event} {
		if *fd >= 0 {
			unix.Close(*fd)
			*fd = -1
		}
	}
}

// Wait waits for this long, or less: until a process was met for the first time with an
// address in its stack that only its mappings tell of, or until Wake is called, which ends
// every Wait from then on. Drain is to follow.
func (s *Sampler) Wait(most time.Duration) {
	var events [2]unix.EpollEvent
	for end := time.Now().Add(most); ; {
		left := max(0, time.Until(end)) + time.Millisecond - 1
		_, err := unix.EpollWait(s.waiter.poll, events[:], int(left/time.Millisecond))
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// Wake ends a Wait. Any goroutine may call it.
func (s *Sampler) Wake() {
	_, _ = unix.Write(s.waiter.event, binary.NativeEndian.AppendUint64(nil, 1))
}
