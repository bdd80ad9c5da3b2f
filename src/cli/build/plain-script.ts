import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'

/** A TypeScript file name at the end of a string, as in imports and paths of programs. */
export const TYPESCRIPT_NAME = /\.ts(?=['"`])/g

/**
 * Converts all TypeScript below a directory to JavaScript by blanking out its types, which keeps line numbers, and
 * renames `.ts` to `.js`. Node would otherwise do this at each start of each process.
 */
export function makePlainScript(directory: string): void {
  for (const name of globSync('**/*.ts', { cwd: directory, exclude: ['node_modules/**'] })) {
    const path = join(directory, name)
    const script = stripTypeScriptTypes(readFileSync(path, 'utf8'), { mode: 'strip' })
    writeFileSync(path.replace(/\.ts$/, '.js'), script.replaceAll(TYPESCRIPT_NAME, '.js'))
    rmSync(path)
  }
}
