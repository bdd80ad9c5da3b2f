import * as z from 'zod'

/**
 * The pages' content security policy forbids functions compiled from text, and zod tries to compile one for each
 * schema. Must be imported before everything that has schemas.
 */
z.config({ jitless: true })
