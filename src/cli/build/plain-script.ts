import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'

/** A file name at the end of a string, as imports and paths of programs have it. */
export const TYPESCRIPT_NAME = /\.ts(?=['"`])/g

/**
 * Turns all TypeScript below a directory into the JavaScript it is with its types blanked out, line for line, and every
 * `.ts` into `.js`. Node would do the same at each start, in each of its processes.
 */
export function makePlainScript(directory: string): void {
  for (const name of globSync('**/*.ts', { cwd: directory, exclude: ['node_modules/**'] })) {
    const path = join(directory, name)
    const script = stripTypeScriptTypes(readFileSync(path, 'utf8'), { mode: 'strip' })
    writeFileSync(path.replace(/\.ts$/, '.js'), script.replaceAll(TYPESCRIPT_NAME, '.js'))
    rmSync(path)
  }
}
