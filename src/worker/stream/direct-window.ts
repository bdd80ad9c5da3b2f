import { JoinWindow, lengthened } from './join-window.ts'

/**
 * Maximum number of chunks of direct streams that are written per second. A chunk that JavaScript reads and writes costs a
 * worker about 60 us, nearly half of it for writing.
 */
const CHUNKS_PER_SECOND = 3_000

/** With this many streams or fewer nothing waits, because they cause no load. */
const FEW_STREAMS = 16
const FEW_MS = (FEW_STREAMS * 1_000) / CHUNKS_PER_SECOND

// With 64 streams and a frame every 20 ms, three frames of a stream are sent together, even if one comes some ms early or
// late.
const lengthen = lengthened(2.4, 50)

/** The window of the streams that a worker reads and writes itself. */
export function openDirectWindow(now: () => number): JoinWindow {
  return new JoinWindow(now, CHUNKS_PER_SECOND, (ms) => (ms <= FEW_MS ? 0 : lengthen(ms)))
}
