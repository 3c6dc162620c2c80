"""Backups of a broker under load: each is restored, and contains one consistent instant."""
