"""The local servers: what a hosted Supabase project is to a client, without Docker."""
