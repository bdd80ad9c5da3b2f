/** Milliseconds between the frames of a paced stream. */
export const FRAME_MS = 20

/** Streams long enough for the longest window, including its warm-up and its end. */
export const PACED = `paced-350x${FRAME_MS}`
export const PACED_SHORT = `paced-200x${FRAME_MS}`
/** Eight frames at once: the time to the first delta without any waiting. */
export const BURST = 'paced-8x0'
/** A frame every half second: streams that are open but mostly idle. */
export const SLOW = 'paced-8x500'
export const WHOLE = 'whole'
/** Streams of a single line. */
export const LINES = [2, 8].map((mib) => ({ mib, behaviour: `line-${mib * 1024}x0` }))

/** Every chat behaviour of the mock; every system offers each as a model. */
export const BEHAVIOURS = [
  WHOLE,
  PACED,
  PACED_SHORT,
  BURST,
  SLOW,
  ...LINES.map(({ behaviour }) => behaviour),
]

/** The models of the other endpoints of the router. */
export const EMBEDDING = 'embedding'
export const TRANSCRIPTION = 'transcription'
