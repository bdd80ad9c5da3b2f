import { equalBytes, utf8, type Bytes } from '../protocol/bytes.ts'
import type { AnswerCipher } from '../protocol/ehbp-answer.ts'
import { FrameReader } from '../protocol/ehbp-frames.ts'
import { AnswerRefused } from './errors.ts'
import type { AnswerBody } from './transport.ts'

/** This router's frames have 64 KiB at most; a larger one would be an attack on the reader's memory. */
const MAX_FRAME_BYTES = 1024 * 1024

type Frames = AsyncGenerator<Bytes, void, undefined>

/** The beginnings of all errors of the router, in each of its formats. No other answer begins like this. */
const ERROR_STARTS = ['{"error":{', '{"type":"error",'].map((text) => utf8(text))

/**
 * Decrypts a body, frame by frame. The body is complete only after the empty frame that the router sends at the end:
 * EHBP itself does not detect truncation between two frames. EHBP does not protect the status either, so an error that
 * came with a status of success is refused: programs would take it for an answer.
 */
export function openedBody(
  body: AnswerBody,
  cipher: AnswerCipher,
  status: number,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  const plain =
    status < 300 ? noError(readFrames(reader, cipher), status) : readFrames(reader, cipher)
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        try {
          const { done, value } = await plain.next()
          if (done === true) controller.close()
          else controller.enqueue(value)
        } catch (error) {
          controller.error(error)
          await reader.cancel(error).catch(() => {})
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

/**
 * Passes the frames on. An error fits into one frame, so the first frame shows whether it is one.
 * @throws AnswerRefused where it is
 */
async function* noError(frames: Frames, status: number): Frames {
  const { done, value: first } = await frames.next()
  if (done === true) return
  if (ERROR_STARTS.some((start) => equalBytes(first.subarray(0, start.length), start))) {
    throw new AnswerRefused(`the answer is an error, and came with status ${status}`)
  }
  yield first
  yield* frames
}

/** @throws AnswerRefused when the answer was changed or cut */
async function* readFrames(
  reader: ReturnType<AnswerBody['getReader']>,
  cipher: AnswerCipher,
): Frames {
  const frames = new FrameReader(MAX_FRAME_BYTES)
  let ended = false
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    for (const frame of pushed(frames, value)) {
      if (ended) throw new AnswerRefused('the answer goes on after its end')
      const plain = await cipher.open(frame).catch(refuse)
      if (plain.length > 0) yield plain
      else ended = true
    }
  }
  if (!ended) throw new AnswerRefused('the answer was cut')
}

function pushed(frames: FrameReader, piece: Uint8Array | undefined): Uint8Array[] {
  try {
    return piece === undefined ? [] : [...frames.push(piece)]
  } catch (error) {
    return refuse(error)
  }
}

function refuse(cause: unknown): never {
  throw new AnswerRefused('the answer was changed on its way', { cause })
}
