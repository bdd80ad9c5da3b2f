import { useEffect, useState } from 'preact/hooks'

/**
 * The current location in the console. Stored in the URL fragment, so that the browser's back and forward buttons work.
 */
export interface Place {
  readonly view: string
  /** The id after the view's name. */
  readonly id: string | undefined
  readonly query: URLSearchParams
}

/** Reads `#/customers/<id>?after=<id>`. */
export function readPlace(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split('?', 2)
  const [view = '', id] = path.split('/', 2)
  return {
    view,
    id: id === undefined || id === '' ? undefined : decode(id),
    query: new URLSearchParams(query),
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export function usePlace(): Place {
  const [hash, setHash] = useState(() => globalThis.location.hash)
  useEffect(() => {
    const changed = () => setHash(globalThis.location.hash)
    globalThis.addEventListener('hashchange', changed)
    return () => globalThis.removeEventListener('hashchange', changed)
  }, [])
  return readPlace(hash)
}
