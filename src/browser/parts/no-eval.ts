import * as z from 'zod'

/**
 * Disables zod's compilation of schemas to code, which the content security policy of the pages forbids
 * (`unsafe-eval`). Must be imported before every module that defines schemas.
 */
z.config({ jitless: true })
