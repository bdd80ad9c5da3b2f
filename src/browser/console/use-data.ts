import { useEffect, useState } from 'preact/hooks'
import type * as z from 'zod'
import { ApiFailure } from './api.ts'
import type { ViewProps } from './view.ts'

/** What is known of something that the router was asked for. */
export interface Known<Value> {
  /** The newest answer; undefined while there is none. */
  readonly data: Value | undefined
  /** Why there is no newer one; empty where there is. */
  readonly problem: string
}

/**
 * Asks the router for something, and again with every look of the console. Of an earlier path nothing is shown.
 * @param path undefined: nothing is asked
 */
export function useData<Schema extends z.ZodType>(
  { api, look, ended }: Pick<ViewProps, 'api' | 'look' | 'ended'>,
  path: string | undefined,
  schema: Schema,
): Known<z.output<Schema>> {
  const [known, setKnown] = useState<Known<z.output<Schema>> & { readonly path?: string }>(NOTHING)
  useEffect(() => {
    let current = true
    if (path === undefined) return undefined
    api.json(path, schema).then(
      (data) => current && setKnown({ data, problem: '', path }),
      (error: unknown) => {
        if (!current) return
        if (error instanceof ApiFailure && error.status === 401) ended(SESSION_OVER)
        const problem = error instanceof ApiFailure ? error.message : 'The page has a fault.'
        setKnown((before) => ({
          data: before.path === path ? before.data : undefined,
          problem,
          path,
        }))
      },
    )
    return () => {
      current = false
    }
  }, [api, path, schema, look, ended])
  return known.path === path ? known : NOTHING
}

/** The router says that the token is wrong, of which a signed-in reader knows nothing. */
const SESSION_OVER = 'Your session has ended. Sign in again.'

const NOTHING = { data: undefined, problem: '' }
