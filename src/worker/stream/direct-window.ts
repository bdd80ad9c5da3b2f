import { JoinWindow, lengthened } from './join-window.ts'

/**
 * How many chunks of direct streams a second are written. One that JavaScript reads and writes costs a worker about 60 us, of
 * which writing is nearly a half.
 */
const CHUNKS_PER_SECOND = 3_000

/** With so few streams nothing waits: they are no load. */
const FEW_STREAMS = 16
const FEW_MS = (FEW_STREAMS * 1_000) / CHUNKS_PER_SECOND

/** With 64 streams, of frames that come every 20 ms three leave together, also where one comes some ms early or late. */
const lengthen = lengthened(2.4, 50)

/** The window of the streams that a worker reads and writes itself. */
export function openDirectWindow(now: () => number): JoinWindow {
  return new JoinWindow(now, CHUNKS_PER_SECOND, (ms) => (ms <= FEW_MS ? 0 : lengthen(ms)))
}
