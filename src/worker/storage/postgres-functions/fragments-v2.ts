/** What functions of the second version have in common, as text that is part of each. */

/**
 * Settings under which rows are found by their indexes whatever the size of the tables when PostgreSQL makes a plan, which it
 * keeps: joins are nested loops. EXISTS must be avoided beside them, because it may be answered by reading a whole table.
 */
export const FLAT_PLANS = `SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan`

/** Makes the commit wait for the disk also where the database's default is not to; stronger defaults stay. */
export const WAIT_FOR_DISK = `IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;`
