import { useEffect, useState } from 'preact/hooks'
import type * as z from 'zod'
import { ApiFailure } from './api.ts'
import type { ViewProps } from './view.ts'

/** The result of requests for one path. */
export interface Known<Value> {
  /** The newest answer; undefined while there is none. */
  readonly data: Value | undefined
  /** Why the last request failed; empty when it succeeded. */
  readonly problem: string
}

/**
 * Requests a path from the router, and again on every refresh. Never shows data of a previous path.
 * @param path undefined: nothing is requested
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

/** Shown instead of the router's message about a wrong token, which would confuse a user who signed in earlier. */
const SESSION_OVER = 'Your session has ended. Sign in again.'

const NOTHING = { data: undefined, problem: '' }
