import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'

const run = promisify(execFile)

/** A block of code in a page of the documentation. */
export interface Example {
  /** The heading it stands under. */
  readonly heading: string
  readonly language: string
  readonly code: string
}

/** A heading, or a fenced block of any language: a line with # within a block is no heading. */
const PARTS = /^#+ (.*)$|^```(\w*)\n([^]*?)^```$/gm

const RUN = new Set(['sh', 'js', 'ini'])

/** The blocks of a page below `docs`, in order. */
export function examplesOf(page: string): readonly Example[] {
  const text = readFileSync(join(PROJECT_DIR, 'docs', page), 'utf8')
  const examples: Example[] = []
  let heading = ''
  for (const [, title, language = '', code = ''] of text.matchAll(PARTS)) {
    if (title !== undefined) heading = title
    else if (RUN.has(language)) examples.push({ heading, language, code })
  }
  return examples
}

/**
 * What a block prints, run as it stands.
 * @throws Error with its output when it fails
 */
export async function outputOf(
  { language, code }: Pick<Example, 'language' | 'code'>,
  { cwd, env }: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): Promise<string> {
  const command: readonly [string, readonly string[]] =
    language === 'sh'
      ? ['bash', ['-euo', 'pipefail', '-c', code]]
      : [process.execPath, ['--input-type=module', '--eval', code]]
  return (await run(...command, { cwd, env })).stdout
}
