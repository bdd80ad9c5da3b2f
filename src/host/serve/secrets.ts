import { readFileSync, statSync } from 'node:fs'

/** Secrets by the name of their variable, and the problems with those that could not be read. */
export interface Secrets {
  readonly values: Readonly<Record<string, string>>
  readonly problems: readonly string[]
}

/** A secret, or why it could not be read. */
type ReadSecret =
  | { readonly value: string; readonly problem?: undefined }
  | { readonly problem: string; readonly value?: undefined }

type Environment = Readonly<Record<string, string | undefined>>

const OTHER_USERS_MODE = 0o007

/**
 * Reads each named secret from the variable of that name, or from the file named in `<name>_FILE`. Names that are in
 * neither are omitted; whether that is a problem depends on the caller.
 */
export function readSecrets(names: Iterable<string>, environment: Environment): Secrets {
  const values: Record<string, string> = {}
  const problems: string[] = []
  for (const name of new Set(names)) {
    const [given, file] = [environment[name]?.trim(), environment[`${name}_FILE`]]
    if (given && file) problems.push(`${name}: is given twice, by ${name} and by ${name}_FILE`)
    else if (given) values[name] = given
    else if (file) {
      const { value, problem } = readSecretFile(`${name}_FILE`, file)
      if (value !== undefined) values[name] = value
      else problems.push(problem)
    }
  }
  return { values, problems }
}

/** Removes the secrets from an environment that child processes would inherit; they get their secrets in other ways. */
export function withoutSecrets(environment: Environment, names: Iterable<string>): Environment {
  const hidden = new Set(names)
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !hidden.has(name)))
}

/**
 * Reads a secret from a file.
 * @param source how the file was named to the program, for the problem
 */
export function readSecretFile(source: string, file: string): ReadSecret {
  const problem = (what: string): ReadSecret => ({ problem: `${source}: ${file} ${what}` })
  try {
    const found = statSync(file)
    // Reading a pipe would block until somebody writes to it, at every reload again.
    if (!found.isFile()) return problem('is not a regular file')
    const { mode } = found
    if ((mode & OTHER_USERS_MODE) !== 0) {
      return problem(`is open to every user (mode ${octal(mode)}): chmod 600 it`)
    }
    const value = readFileSync(file, 'utf8').trim()
    return value === '' ? problem('is empty') : { value }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    return problem(`cannot be read (${code})`)
  }
}

function octal(mode: number): string {
  return (mode & 0o777).toString(8).padStart(4, '0')
}
