import { InvalidArgumentError } from 'commander'

/** A commander option that takes a positive whole number. */
export function wholeNumber(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('give a whole number above 0')
}

/** A repeatable commander option that takes a launch measurement. */
export function measurement(text: string, before: readonly string[]): string[] {
  if (/^[0-9a-f]{96}$/.test(text)) return [...before, text]
  throw new InvalidArgumentError('a measurement is 96 lowercase hex digits')
}

/** Prints a result as JSON. */
export function print(value: unknown): void {
  console.log(asText(value))
}

/**
 * Prints a result as JSON, and waits until it is written.
 * @throws Error when it cannot be written, for example because the disk is full or the reader closed the pipe
 */
export async function printed(value: unknown): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  process.stdout.once('error', reject)
  process.stdout.write(`${asText(value)}\n`, (error) => {
    if (!error) resolve()
  })
  await promise
  process.stdout.off('error', reject)
}

function asText(value: unknown): string {
  return JSON.stringify(value, null, 2)
}
