import { execFile, spawn } from 'node:child_process'
import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** The coding agents that are tried as they are: programs of their own, too large to be dependencies. */
export interface AgentClis {
  readonly codex: string
  readonly claude: string
}

const PACKAGES = ['@openai/codex@0.169.0', '@anthropic-ai/claude-code@2.1.330']
const INSTALL_MS = 240_000

/**
 * Installs the agents into a folder of their own, or finds them in `AGENT_CLIS`, a folder they were installed into
 * before. Undefined where they cannot be installed, and in continuous integration, because they are 770 MB.
 */
export async function installAgentClis(): Promise<AgentClis | undefined> {
  const run = promisify(execFile)
  const given = process.env['AGENT_CLIS']
  if (given === undefined && process.env['CI'] !== undefined) return undefined
  const folder = given ?? mkdtempSync(join(tmpdir(), 'cmr-agents-'))
  try {
    if (given === undefined) {
      const install = ['install', '--no-audit', '--no-fund', '--prefix', folder, ...PACKAGES]
      await run('npm', install, { timeout: INSTALL_MS })
      const claude = join(folder, 'node_modules/@anthropic-ai/claude-code')
      await run(process.execPath, ['install.cjs'], { cwd: claude, timeout: INSTALL_MS })
    }
  } catch {
    return undefined
  }
  const bin = (name: string) => join(folder, 'node_modules/.bin', name)
  const clis = { codex: bin('codex'), claude: bin('claude') }
  return existsSync(clis.codex) && existsSync(clis.claude) ? clis : undefined
}

/** Runs a program to its end; everything it printed. */
export function runCli(
  file: string,
  args: readonly string[],
  { cwd, env }: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 120_000,
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (part: Buffer) => (output += part.toString()))
    }
    child.once('error', reject)
    child.once('close', () => resolve(output))
  })
}
