/** Where an unexpected error was thrown, without its message, which may quote prompts, keys and addresses. */
export interface ErrorTrace {
  /** The name of the error's class. */
  readonly error: string
  /** The error's code, or that of its cause, such as `ECONNREFUSED`. */
  readonly error_code?: string
  /** `function (file:line:column)`, the innermost first. */
  readonly frames: readonly string[]
}

const MAX_FRAMES = 8
const MAX_CAUSES = 4

/** The form of error codes of Node, SQLite and OpenSSL; anything else might be free text. */
const CODE = /^[A-Z][A-Z0-9_]{1,63}$/
const NAME = /^[A-Za-z][A-Za-z0-9_]{0,63}$/
const FRAME = /^ {4}at (.{1,300})$/

export function traceError(thrown: unknown): ErrorTrace {
  if (!(thrown instanceof Error)) return { error: typeof thrown, frames: [] }
  const code = codeOf(thrown)
  return {
    error: NAME.test(thrown.name) ? thrown.name : 'Error',
    ...(code === undefined ? {} : { error_code: code }),
    frames: framesOf(thrown),
  }
}

function codeOf(thrown: Error): string | undefined {
  let error: unknown = thrown
  for (let depth = 0; depth < MAX_CAUSES && error instanceof Error; depth++) {
    if ('code' in error && typeof error.code === 'string' && CODE.test(error.code)) {
      return error.code
    }
    error = error.cause
  }
  return undefined
}

/**
 * Reads the stack's frames. The stack begins with the message, which may itself look like frames; if the message's
 * exact end is unknown, no frames are returned.
 */
function framesOf({ message, stack = '' }: Error): string[] {
  const at = stack.indexOf(message)
  const head = stack.slice(0, at)
  if (at < 0 || head.includes('\n')) return []
  const lines = stack.slice(at + message.length).split('\n')
  return lines.flatMap((line) => FRAME.exec(line)?.[1] ?? []).slice(0, MAX_FRAMES)
}
