import { spawn } from 'node:child_process'
import { basename } from 'node:path'
import { text } from 'node:stream/consumers'
import { ImageError } from './image-error.ts'

const LAST_CHARACTERS = 2000

export interface RunOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
}

/**
 * Runs a program to its end and returns what it wrote to stdout. Its environment is minimal, so that the machine's
 * environment cannot affect an image.
 * @throws ImageError when the program fails, with the end of its error output
 */
export async function run(
  program: string,
  args: readonly string[],
  { cwd, env }: RunOptions = {},
): Promise<string> {
  const child = spawn(program, args, {
    cwd,
    env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C', TZ: 'UTC', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve(code ?? 1))
  })
  const failed = (reason: string, cause?: unknown) =>
    new ImageError(`${basename(program)}: ${reason.trim().slice(-LAST_CHARACTERS)}`, { cause })
  try {
    const [status, out, said] = await Promise.all([ended, text(child.stdout), text(child.stderr)])
    if (status !== 0) throw failed(said.trim() === '' ? `ended with status ${status}` : said)
    return out
  } catch (cause) {
    throw cause instanceof ImageError ? cause : failed(String(cause), cause)
  }
}
